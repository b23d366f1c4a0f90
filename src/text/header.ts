// The grammar of a header, as Envoy forwards it.

/** RFC 9110 section 5.6.2. */
export function isHeaderName(text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text);
}

/** RFC 9110 section 5.5: no control characters but the tab. */
export function isHeaderValue(text: string): boolean {
  return /^[\t -~\u0080-\uffff]*$/.test(text);
}
