// The protos of proto/ as protobufjs reads them, and the facts of their messages, enums and services.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

export const entryFile = 'envoy/service/auth/v3/external_auth.proto';

export const ourDirectory = fileURLToPath(new URL('../../proto/', import.meta.url));

export const ours = loadProtos([ourDirectory], [entryFile, 'grpc/health/v1/health.proto']);

export function loadProtos(directories: readonly string[], files: readonly string[]): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => directories.map(each => join(each, target)).find(isReadable) ?? target;
  root.loadSync([...files], { keepCase: true });
  root.resolveAll();
  return root;
}

export function isReadable(file: string): boolean {
  try {
    readFileSync(file);
    return true;
  } catch {
    return false;
  }
}

// protobufjs keeps the names by number in the prototype of the numbers by name.
export function valuesOf(enumeration: protobuf.Enum): Record<string, number> {
  return { ...enumeration.values };
}
