// Volumes and paths: each file that a container refers to is mounted at that path, from the right key, and readable;
// nothing else is mounted.
import { dirname } from 'node:path';
import { parseListenAddress } from '../../../../src/text/listen-address.ts';
import { type Facts, problemsOf, type Rules, valuesIn } from '../facts.ts';
import {
  type Container,
  containersOf,
  type KeyToPath,
  type Pod,
  podsOf,
  type Volume,
  withoutHash,
} from '../manifest.ts';

export interface MountedFile {
  readonly path: string;
  /** `ConfigMap/NAME/KEY` or `Secret/NAME/KEY`, without the hash of kustomize. */
  readonly source: string;
  readonly text: string;
}

/** The mounted files of a container; a key that its source lacks is not mounted. */
export function mountedFiles(facts: Facts, pod: Pod, container: Container): MountedFile[] {
  return (container.volumeMounts ?? []).flatMap(({ name, mountPath }) =>
    (pod.spec.volumes ?? [])
      .filter(volume => volume.name === name)
      .flatMap(sourcesOf)
      .flatMap(source =>
        filesOf(facts, source).map(({ key, path, text }) => ({
          path: `${mountPath}/${path}`,
          source: `${source.kind}/${withoutHash(source.name)}/${key}`,
          text,
        })),
      ),
  );
}

interface Source {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  readonly items?: readonly KeyToPath[] | undefined;
}

function sourcesOf({ configMap, secret, projected }: Volume): Source[] {
  return [
    ...(configMap === undefined ? [] : [{ kind: 'ConfigMap', ...configMap } as const]),
    ...(secret === undefined ? [] : [{ kind: 'Secret', name: secret.secretName, items: secret.items } as const]),
    ...(projected?.sources ?? []).flatMap(source => [
      ...(source.configMap === undefined ? [] : [{ kind: 'ConfigMap', ...source.configMap } as const]),
      ...(source.secret === undefined ? [] : [{ kind: 'Secret', ...source.secret } as const]),
    ]),
  ];
}

/** The data of a source; the operator's Secrets are those of the trial script. */
function dataOf({ manifests, secrets }: Facts, { kind, name }: Source): Readonly<Record<string, string>> | undefined {
  if (kind === 'Secret') return secrets[name];
  return manifests.find(each => each.kind === kind && each.metadata.name === name)?.data;
}

function filesOf(facts: Facts, source: Source): { key: string; path: string; text: string }[] {
  const data = dataOf(facts, source) ?? {};
  const items = source.items ?? Object.keys(data).map(key => ({ key, path: key }));
  return items.flatMap(({ key, path }) => (data[key] === undefined ? [] : [{ key, path, text: data[key] }]));
}

export function mountProblems(facts: Facts): string[] {
  return podsOf(facts.manifests).flatMap(pod => [
    ...problemsOf((pod.spec.volumes ?? []).flatMap(volume => volumeRules(facts, pod, volume))),
    ...containersOf(pod).flatMap(container => readerProblems(facts, pod, container)),
  ]);
}

function volumeRules(facts: Facts, pod: Pod, volume: Volume): Rules {
  const who = `volume ${volume.name} of ${pod.name}`;
  const sources = sourcesOf(volume);
  const mounts = containersOf(pod).flatMap(each =>
    (each.volumeMounts ?? []).filter(({ name }) => name === volume.name),
  );
  const modes = [volume.secret?.defaultMode, volume.configMap?.defaultMode, volume.projected?.defaultMode];
  const given = modes.filter(mode => mode !== undefined);
  const isSecret = sources.some(({ kind }) => kind === 'Secret');
  return [
    [mounts.length > 0, `${who} is not mounted`],
    [
      mounts.filter(({ readOnly }) => readOnly !== true).length === (volume.emptyDir === undefined ? 0 : 1),
      `${who} can be written to, or not`,
    ],
    [
      volume.emptyDir === undefined || (volume.emptyDir.medium === 'Memory' && volume.emptyDir.sizeLimit !== undefined),
      `${who} is on a disk or has no limit`,
    ],
    [sources.every(source => dataOf(facts, source) !== undefined), `${who} is of what is not there`],
    [
      sources.every(source => (source.items ?? []).every(({ key }) => dataOf(facts, source)?.[key] !== undefined)),
      `${who} is of a key that is not there`,
    ],
    // The kubelet sets the group of the files to the pod's fsGroup.
    [given.every(mode => (mode & 0o040) !== 0) && isGroupOfAll(pod), `${who} cannot be read`],
    [!isSecret || (given.length > 0 && given.every(mode => (mode & 0o007) === 0)), `${who} can be read by everybody`],
  ];
}

function isGroupOfAll(pod: Pod): boolean {
  const { fsGroup } = pod.spec.securityContext ?? {};
  const groups = containersOf(pod).map(
    each => each.securityContext?.runAsGroup ?? pod.spec.securityContext?.runAsGroup,
  );
  return fsGroup !== undefined && groups.every(group => group === fsGroup);
}

/** A path that a container reads, and the required source of its content. */
type Reads = readonly (readonly [path: string, source: RegExp])[];

const certificate = /^Secret\/[^/]+\/tls\.crt$/;
const privateKey = /^Secret\/[^/]+\/tls\.key$/;
const authority = /^Secret\/[^/]+\/ca\.crt$/;

function readerProblems(facts: Facts, pod: Pod, container: Container): string[] {
  const who = `${pod.name}/${container.name}`;
  const files = mountedFiles(facts, pod, container);
  const reads = readsOf(facts, container);
  const folders = (container.volumeMounts ?? [])
    .filter(mount => pod.spec.volumes?.some(({ name, emptyDir }) => name === mount.name && emptyDir !== undefined))
    .map(({ mountPath }) => mountPath);
  const sockets = socketFolders(facts, container);
  return [
    ...reads
      .filter(([path, source]) => !files.some(file => file.path === path && source.test(file.source)))
      .map(([path]) => `${who} reads ${path}, which is not there or is of another key`),
    ...files
      .filter(file => !reads.some(([path]) => path === file.path))
      .map(({ path, source }) => `${who} does not read ${path} (${source})`),
    ...watchedFolders(facts, container)
      .filter(path => !container.volumeMounts?.some(({ mountPath }) => mountPath === path))
      .map(path => `${who} watches ${path}, which is no mount`),
    ...sockets.filter(path => !folders.includes(path)).map(path => `${who} has no folder ${path} for its socket`),
    ...folders.filter(path => !sockets.includes(path)).map(path => `${who} has no use for ${path}`),
  ];
}

function readsOf({ config, envoyFiles }: Facts, { name, args = [] }: Container): Reads {
  const option = (given: string): string => args[args.indexOf(given) + 1] ?? '';
  if (name === 'account-authz') {
    const { certFile, keyFile, clientCaFile } = config.tls ?? {};
    const issuers = config.issuers.flatMap(issuer => [
      issuer.jwksFile,
      issuer.caFile,
      issuer.clientCertFile,
      issuer.clientKeyFile,
    ]);
    const all: readonly (readonly [string | undefined, RegExp])[] = [
      [option('--config'), /^ConfigMap\/account-authz-config\/config\.yaml$/],
      [certFile, certificate],
      [keyFile, privateKey],
      [clientCaFile, authority],
      [config.revocation?.file, /^ConfigMap\/account-authz-revocation\/revoked\.jsonl$/],
      ...issuers.map(file => [file, /./] as const),
    ];
    return all.flatMap(([path, source]) => (path === undefined ? [] : [[path, source] as const]));
  }
  if (name !== 'envoy') return [];
  const values = Object.values(envoyFiles).flatMap(file => valuesIn(file));
  return [
    [option('--config-path'), /^ConfigMap\/account-authz-envoy\/envoy\.yaml$/],
    ...values.flatMap(({ path, value }): Reads => {
      if (typeof value !== 'string') return [];
      if (path.at(-1) === 'path' && path.at(-2) === 'path_config_source')
        return [[value, /^ConfigMap\/account-authz-envoy\//]];
      if (path.at(-1) !== 'filename') return [];
      return [
        [value, path.at(-2) === 'private_key' ? privateKey : path.at(-2) === 'trusted_ca' ? authority : certificate],
      ];
    }),
  ];
}

function watchedFolders({ envoyFiles }: Facts, { name }: Container): string[] {
  if (name !== 'envoy') return [];
  return Object.values(envoyFiles)
    .flatMap(file => valuesIn(file))
    .filter(({ path }) => path.at(-2) === 'watched_directory')
    .map(({ value }) => String(value));
}

function socketFolders({ config, envoyFiles }: Facts, { name }: Container): string[] {
  const listen = parseListenAddress(config.listen);
  if (name === 'account-authz') return listen.kind === 'unix' ? [dirname(listen.path)] : [];
  if (name !== 'envoy') return [];
  return valuesIn(envoyFiles['envoy.yaml'])
    .filter(({ path }) => path.at(-2) === 'pipe')
    .map(({ value }) => dirname(String(value)));
}
