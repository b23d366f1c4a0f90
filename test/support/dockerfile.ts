// Reads a Dockerfile, and the rules for ours.

export interface Instruction {
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  readonly name: string;
  readonly from: string;
  readonly instructions: readonly Instruction[];
}

export interface Dockerfile {
  /** The ARGs before the first FROM. */
  readonly args: ReadonlyMap<string, string>;
  readonly stages: readonly Stage[];
}

export const product = 'account-authz';
export const demo = 'demo';
const runtimeStages = [product, demo];
const pinned = /^[a-z0-9.-]+\.[a-z]+\/[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/;
const labels = ['title', 'description', 'licenses', 'version', 'revision', 'created', 'source', 'base.name'];

export function parseDockerfile(text: string): Dockerfile {
  const lines = text
    .split('\n')
    .filter(line => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter(line => line.trim() !== '');
  const args = new Map<string, string>();
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines) {
    const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
    const stage = stages.at(-1);
    if (name === 'FROM') {
      const [, from = '', as = ''] = /^(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?$/.exec(rest) ?? [];
      stages.push({ name: as, from, instructions: [] });
    } else if (stage !== undefined) stage.instructions.push({ name, text: rest.trim() });
    else args.set(rest.slice(0, rest.indexOf('=')), rest.slice(rest.indexOf('=') + 1));
  }
  return { args, stages };
}

/** The last instruction with this name, which is the effective one. */
export function lastOf(stage: Stage | undefined, name: string): string {
  return stage?.instructions.findLast(each => each.name === name)?.text ?? '';
}

export function allOf(stage: Stage | undefined, name: string): string[] {
  return (stage?.instructions ?? []).filter(each => each.name === name).map(({ text }) => text);
}

/** The words of an instruction in exec form; undefined in shell form. */
export function execForm(text: string): string[] | undefined {
  const json = text.slice(text.indexOf('['));
  if (!/^(?:--\S+\s+)*(?:CMD\s+)?\[/.test(text)) return undefined;
  const words: unknown = JSON.parse(json);
  return Array.isArray(words) ? words.map(String) : undefined;
}

export function dockerfileProblems(text: string): string[] {
  const { args, stages } = parseDockerfile(text);
  const names = stages.map(({ name }) => name);
  return [
    ...['BUILD_IMAGE', 'RUNTIME_IMAGE']
      .filter(name => !pinned.test(args.get(name) ?? ''))
      .map(name => `${name} has no default with a tag and a digest`),
    ...stages
      .filter(({ from }) => !names.includes(from) && !/^\$\{(BUILD|RUNTIME)_IMAGE\}$/.test(from))
      .map(({ from }) => `${from} is neither a stage nor a base that can be replaced`),
    ...(names.at(-1) === product ? [] : ['the product is not what is built without a target']),
    ...(/:latest\b/.test(text) ? ['something is latest'] : []),
    ...stages.flatMap(stage => allOf(stage, 'ADD').map(each => `ADD ${each}: COPY does what is wanted`)),
    ...stages.flatMap(stage => allOf(stage, 'RUN').flatMap(each => installProblems(each))),
    ...runtimeStages.flatMap(name => {
      const stage = stages.find(each => each.name === name);
      return stage === undefined ? [`there is no ${name}`] : runtimeProblems(stage);
    }),
  ];
}

function installProblems(command: string): string[] {
  const installs = command.split('&&').filter(each => /\bnpm (?:ci|install)\b/.test(each));
  return installs.filter(each => !each.includes('--ignore-scripts')).map(each => `${each.trim()} runs scripts`);
}

function runtimeProblems(stage: Stage): string[] {
  const problems = [
    ...(stage.from === `\${RUNTIME_IMAGE}` ? [] : ['is not on the runtime base']),
    ...(/^[1-9]\d*:[1-9]\d*$/.test(lastOf(stage, 'USER')) ? [] : ['does not run as a numeric user other than root']),
    ...['ENTRYPOINT', 'CMD', 'HEALTHCHECK']
      .flatMap(name => allOf(stage, name).map(each => ({ name, words: execForm(each) })))
      .filter(({ words }) => words === undefined)
      .map(({ name }) => `has its ${name} in shell form`),
    ...(execForm(lastOf(stage, 'ENTRYPOINT')) === undefined ? ['has no entrypoint'] : []),
    ...allOf(stage, 'RUN').map(() => 'runs something, but its base has no shell'),
    ...allOf(stage, 'COPY')
      .filter(each => /--ch(?:own|mod)/.test(each))
      .map(() => 'gives files to another user than root'),
    ...labels
      .filter(label => !lastOf(stage, 'LABEL').includes(`org.opencontainers.image.${label}=`))
      .map(label => `lacks the label ${label}`),
  ];
  return problems.map(problem => `${stage.name} ${problem}`);
}
