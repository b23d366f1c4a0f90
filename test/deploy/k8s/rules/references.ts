// References: each object that another one refers to by kind and name exists, in that namespace and group, with that port or section.
import { at, everyValue, type Facts, listOf, type Path, problemsOf, type Rules } from '../facts.ts';
import { type Manifest, nameOf, ofKind, podsOf } from '../manifest.ts';

const controller = 'gateway.envoyproxy.io/gatewayclass-controller';

export function objectReferenceProblems(facts: Facts): string[] {
  const { manifests } = facts;
  return problemsOf([
    ...manifests.flatMap(manifest =>
      everyValue(manifest.spec).flatMap(({ path, value }) => referenceRules(facts, manifest, path, value)),
    ),
    ...ofKind(manifests, 'Gateway').map(
      gateway =>
        [
          manifests.some(
            each =>
              each.kind === 'GatewayClass' &&
              each.metadata.name === gateway.spec.gatewayClassName &&
              at(each.spec, 'controllerName') === controller,
          ),
          `${nameOf(gateway)} is of a class that Envoy Gateway does not serve`,
        ] as const,
    ),
  ]);
}

function referenceRules({ manifests, secrets }: Facts, from: Manifest, path: Path, value: unknown): Rules {
  if (typeof value !== 'object') return [];
  const [kind, name, namespace] = [at(value, 'kind'), at(value, 'name'), at(value, 'namespace')];
  if (typeof kind !== 'string' || typeof name !== 'string') return [];
  const who = `${nameOf(from)} ${path.join('.')}`;
  const isSameNamespace = namespace === undefined || namespace === from.metadata.namespace;
  if (kind === 'Secret')
    return [
      [
        Object.hasOwn(secrets, name) && isSameNamespace && at(value, 'group') === '',
        `${who} names a Secret that does not exist`,
      ],
    ];
  const target = manifests.find(
    each =>
      each.kind === kind &&
      each.metadata.name === name &&
      each.metadata.namespace === (namespace ?? from.metadata.namespace),
  );
  if (target === undefined) return [[false, `${who} names ${kind}/${name}, which is not there`]];
  const group = target.apiVersion.includes('/') ? target.apiVersion.split('/')[0] : '';
  const ports = listOf(at(target.spec, 'ports'));
  const sections = [...ports, ...listOf(at(target.spec, 'listeners'))].map(section => at(section, 'name'));
  const [port, section, version] = [at(value, 'port'), at(value, 'sectionName'), at(value, 'apiVersion')];
  return [
    [at(value, 'group') === (version === undefined ? group : undefined), `${who} names another group than ${group}`],
    [version === undefined || version === target.apiVersion, `${who} names another version than ${target.apiVersion}`],
    [port === undefined || ports.some(each => at(each, 'port') === port), `${who} names a port that is not there`],
    [kind !== 'Service' || port !== undefined || section !== undefined, `${who} names no port`],
    [section === undefined || sections.includes(section), `${who} names a section that is not there`],
  ];
}

/** For pods with an Envoy: the namespace and the service account that the commands of its page name. */
export function accountProblems({ manifests }: Facts): string[] {
  const accounts = ofKind(manifests, 'ServiceAccount');
  return problemsOf([
    ...podsOf(manifests).map(
      ({ name, spec }) =>
        [
          accounts.some(({ metadata }) => metadata.name === spec.serviceAccountName),
          `${name} has no service account of its own`,
        ] as const,
    ),
    ...accounts.flatMap(
      (account): Rules => [
        [account.automountServiceAccountToken === false, `${nameOf(account)} hands out a token`],
        [
          podsOf(manifests).some(({ spec }) => spec.serviceAccountName === account.metadata.name),
          `${nameOf(account)} is of no pod`,
        ],
      ],
    ),
  ]);
}
