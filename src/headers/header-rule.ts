// What is done with some header names, for one reason.

export interface HeaderRule {
  /** In lower case. With `*` at its end: every name that begins so. */
  readonly names: readonly string[];
  /** `override`: an upstream would act on another request than the checked one. */
  readonly kind: 'identity' | 'filter' | 'override' | 'token' | 'account' | 'context';
  readonly why: string;
  /** Envoy shows it to account-authz; `spellings`: what a server could read as this name too, so that account-authz refuses it. */
  readonly shown?: 'exactly' | 'spellings';
  /** Where Envoy removes it from requests, in every spelling that a server could read as this name. */
  readonly removed?: 'everywhere' | 'checked' | 'public';
  /** Envoy removes it from trailers, which no check sees, in every spelling too. */
  readonly inTrailers?: 'removed';
  /** What an allow does with it; `removes`: in each mixture of hyphens and underscores. */
  readonly allow?: 'sets' | 'removes' | 'rewrites';
}
