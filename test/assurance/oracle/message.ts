// The type of a CheckRequest with the field names of Envoy's proto, which the generator writes and the oracle reads.

export interface HeaderEntry {
  readonly key: string;
  readonly value: string;
  readonly raw_value: Buffer;
}

export interface HttpAttributes {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  readonly protocol: string;
  readonly query: string;
  readonly fragment: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The entries of `headers` as encoded, with duplicate keys. Not a field of the proto. */
  readonly headerEntries?: readonly (readonly [key: string, value: string])[];
  readonly header_map: { readonly headers: readonly HeaderEntry[] } | null;
}

export interface CheckMessage {
  readonly attributes: {
    /** PEM, percent-encoded. */
    readonly source?: { readonly certificate: string };
    readonly request: { readonly http: HttpAttributes | null } | null;
    readonly context_extensions: Readonly<Record<string, string>>;
  } | null;
}
