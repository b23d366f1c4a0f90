// An extension of Envoy: its name, the full name of its type and its settings.
import type { Members } from './tree.ts';

/** `type` is without envoy.extensions. */
export function extension(name: string, type: string, fields: Members = {}): Members {
  return { name, typed_config: typed(type, fields) };
}

export function typed(type: string, fields: Members = {}): Members {
  return { '@type': `type.googleapis.com/envoy.extensions.${type}`, ...fields };
}
