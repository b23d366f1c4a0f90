// The command line of `render`, as a made file has it and as a reader may copy it into a shell.
import { parseArgs } from 'node:util';
import { printable } from '../text/printable.ts';
import { parseRenderOptions, renderOptions } from './options.ts';
import { mark } from './rendered-files.ts';
import { targets } from './targets.ts';

const renderCommand = 'account-authz render ';
// parseArgs takes quadratic time.
const maxCommandLine = 8192;

/** The command that makes the bootstrap again for this configuration: with the options by which `render` made it, if it did. */
export function renderCommandFor(bytes: Uint8Array, config: string): string {
  const [first = ''] = Buffer.from(bytes).toString().split('\n', 1);
  const start = first.startsWith(mark) ? first.indexOf(renderCommand) : -1;
  const made =
    start === -1 || first.length > maxCommandLine ? undefined : parseMade(first.slice(start + renderCommand.length));
  return `${renderCommand}${toCommandLine([...(made ?? ['envoy-parts']), '--config', config])}`;
}

/**
 * The target and the options of a line that `toCommandLine` made, without --config; undefined if `render` would not take them.
 * A file can say anything there, and its reader copies the command into a shell.
 */
function parseMade(line: string): readonly string[] | undefined {
  const [target = '', ...args] = (line.match(/(?:'[^']*'|\\.|[^' \\])+/g) ?? []).map(fromShellWord);
  if (!Object.hasOwn(targets, target)) return undefined;
  try {
    const { config: _, ...values } = parseArgs({
      args,
      options: { ...renderOptions, config: { type: 'string' } },
    }).values;
    const isTaken = Object.keys(values).every(name => targets[target]?.options.some(option => option === name));
    if (!isTaken || typeof parseRenderOptions(values) === 'string') return undefined;
    return [
      target,
      ...Object.entries(values).flatMap(([name, value]) => [value].flat().flatMap(each => [`--${name}`, each])),
    ];
  } catch {
    return undefined;
  }
}

function fromShellWord(word: string): string {
  return word.replaceAll(/'([^']*)'|\\(.)/g, (_, quoted: string | undefined, escaped: string) => quoted ?? escaped);
}

/** For a POSIX shell, in one line. */
export function toCommandLine(words: readonly string[]): string {
  return words
    .map(word => printable(word, 1024))
    .map(word => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}
