// Writes `listen` into the text of a configuration that leaves it out, for a target whose default is another than that of `serve`.
import { isMap, parseDocument } from 'yaml';

/** That of `render kubernetes`: cheaper than TCP, and no other container of the pod can call it or take its place. */
export const podSocket = 'unix:/run/account-authz/authz.sock';

/** Undefined where the text says `listen` itself, or is no configuration. */
export function withListen(text: string, listen: string): string | undefined {
  const { contents } = parseDocument(text);
  if (!isMap(contents) || contents.has('listen') || contents.range == null) return undefined;
  const [start] = contents.range;
  if (contents.flow === true) return `${text.slice(0, start + 1)}"listen": "${listen}", ${text.slice(start + 1)}`;
  const indent = text.slice(text.lastIndexOf('\n', start - 1) + 1, start);
  const line = `listen: ${listen} # of render kubernetes, in a folder that both sidecars share; 127.0.0.1:9191 is TCP`;
  return `${text.slice(0, start)}${line}\n${indent}${text.slice(start)}`;
}
