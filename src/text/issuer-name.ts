// The grammar of the name of an issuer, which a token has as `iss`.

export const issuerGrammar = /^[!-~]{1,1024}$/;
export const issuerRule = 'must be 1 to 1024 visible ASCII characters';
