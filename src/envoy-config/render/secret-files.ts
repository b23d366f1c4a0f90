// The files by which Envoy gets its certificates and authorities (SDS from a file).
import { tlsFiles } from '../authz-cluster.ts';
import { typed } from '../extension.ts';
import type { EnvoySettings } from '../settings.ts';
import type { Members } from '../tree.ts';
import type { RenderedFile } from './rendered-files.ts';

export function secretFiles({ tls }: EnvoySettings): readonly RenderedFile[] {
  if (tls === undefined) return [];
  const folder = '/etc/envoy-tls';
  const watched = { watched_directory: { path: folder } };
  const file = ({ name }: { name: string }, content: Members): RenderedFile => ({
    name: `${name}.yaml`,
    introduction: ['Envoy reads it (SDS from a file), and again whenever the files change.'],
    content: [{ resources: [typed('transport_sockets.tls.v3.Secret', { name, ...content })] }],
  });
  const certificate = file(tlsFiles.clientCertificate, {
    tls_certificate: {
      certificate_chain: { filename: `${folder}/tls.crt` },
      private_key: { filename: `${folder}/tls.key` },
      ...watched,
    },
  });
  const authority = file(tlsFiles.serverAuthority, {
    validation_context: { trusted_ca: { filename: `${folder}/ca.crt` }, ...watched },
  });
  return tls.showsCertificate ? [certificate, authority] : [authority];
}
