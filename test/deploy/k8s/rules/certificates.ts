// Certificates: with the operator's Secrets as k8s/make-trial-certificates.sh creates them, each side accepts the certificate of the other.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { at, type Facts, memoized, problemsOf, type Rules, valuesIn, valuesOf } from '../facts.ts';
import { containerOf, ofKind, podsOf } from '../manifest.ts';
import { mountedFiles } from './mounts.ts';

interface Identity {
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** The CA bundle for peers. */
  readonly authority?: string | undefined;
  /** The required name of the peer. */
  readonly names?: readonly string[];
}

export function certificateProblems(facts: Facts): string[] {
  const server = serverOf(facts);
  if (server === undefined) return [];
  const clients = [...envoysOf(facts), ...gatewaysOf(facts)];
  return problemsOf([
    [clients.length > 0, 'no client of account-authz has a certificate'],
    ...identityRules('account-authz', server),
    ...clients.flatMap(
      (client): Rules => [
        ...identityRules('the client', client),
        [isIssuedBy(client.certificate, server.authority), 'account-authz takes no certificate of the client'],
        [isIssuedBy(server.certificate, client.authority), 'the client takes no certificate of account-authz'],
        [
          (client.names ?? []).length > 0 && (client.names ?? []).every(name => isFor(server.certificate, name)),
          `the certificate of account-authz is not for ${client.names}`,
        ],
      ],
    ),
  ]);
}

// The tests of mistakes ask about the same few texts thousands of times.
const certificateOf = memoized((text: string) => new X509Certificate(text));
const privateKeyOf = memoized((text: string) => createPrivateKey(text));

function identityRules(who: string, { certificate, key }: Identity): Rules {
  const isPair =
    certificate !== undefined &&
    key !== undefined &&
    attempt(() => certificateOf(certificate).checkPrivateKey(privateKeyOf(key)));
  return [[isPair, `${who} has no certificate with its key`]];
}

function isIssuedBy(certificate = '', authority = ''): boolean {
  return attempt(() => certificateOf(certificate).checkIssued(certificateOf(authority)));
}

function isFor(certificate = '', name: string): boolean {
  return attempt(() => certificateOf(certificate).checkHost(name, { subject: 'never' }) === name);
}

/** An unparsable certificate does not match. */
function attempt(verify: () => boolean): boolean {
  try {
    return verify();
  } catch {
    return false;
  }
}

function serverOf(facts: Facts): Identity | undefined {
  const { tls } = facts.config;
  if (tls === undefined) return undefined;
  const text = readerOf(facts, 'account-authz');
  return { certificate: text(tls.certFile), key: text(tls.keyFile), authority: text(tls.clientCaFile) };
}

function envoysOf(facts: Facts): Identity[] {
  const cluster = at(facts.bootstrap, 'static_resources', 'clusters', 'account-authz');
  const context = at(cluster, 'transport_socket', 'typed_config');
  if (context === undefined) return [];
  const text = readerOf(facts, 'envoy');
  const values = Object.values(facts.envoyFiles).flatMap(file => valuesIn(file));
  const fileOf = (field: string): string | undefined => {
    const found = values.find(({ path }) => path.at(-1) === 'filename' && path.at(-2) === field);
    return text(found === undefined ? undefined : String(found.value));
  };
  const [names = []] = valuesOf(context, 'match_typed_subject_alt_names').map(list => valuesOf(list, 'exact'));
  return [
    {
      certificate: fileOf('certificate_chain'),
      key: fileOf('private_key'),
      authority: fileOf('trusted_ca'),
      names: names.length === 0 ? [] : [...names, at(context, 'sni'), authorityOf(facts)].map(String),
    },
  ];
}

function authorityOf({ bootstrap }: Facts): unknown {
  return valuesOf(bootstrap, 'envoy_grpc').map(each => at(each, 'authority'))[0];
}

function gatewaysOf({ manifests, secrets }: Facts): Identity[] {
  const [proxy] = ofKind(manifests, 'EnvoyProxy');
  const [policy] = ofKind(manifests, 'BackendTLSPolicy');
  if (proxy === undefined || policy === undefined) return [];
  const own = secrets[proxy.spec.backendTLS.clientCertificateRef.name];
  const theirs = secrets[policy.spec.validation.caCertificateRefs[0]?.name ?? ''];
  return [
    {
      certificate: own?.['tls.crt'],
      key: own?.['tls.key'],
      authority: theirs?.['ca.crt'],
      names: [policy.spec.validation.hostname],
    },
  ];
}

function readerOf(facts: Facts, name: string): (path: string | undefined) => string | undefined {
  const files = podsOf(facts.manifests).flatMap(pod => {
    const container = containerOf(pod, name);
    return container === undefined ? [] : mountedFiles(facts, pod, container);
  });
  return path => files.find(file => file.path === path)?.text;
}
