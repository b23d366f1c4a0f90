// Which key URLs the configuration accepts, and the problem reported for each other one.
import { expect } from 'chai';
import { keyUrlProblem } from '../../src/text/url.ts';

describe('keyUrlProblem', () => {
  const good = [
    ...'https://auth.example.com/.well-known/jwks.json https://auth.example.com'.split(' '),
    ...'https://auth.example.com:8443/jwks?tenant=a@b https://10.0.0.1/jwks https://[2001:db8::1]/jwks'.split(' '),
    ...'https://169.253.169.254/jwks https://[fec0::1]/jwks http://localhost:8080/jwks'.split(' '),
    ...'http://LOCALHOST/jwks http://127.0.0.1/jwks http://127.255.255.254:1/jwks http://127.1/jwks'.split(' '),
    ...'http://2130706433/jwks http://[::1]:8080/jwks http://[0:0:0:0:0:0:0:1]/jwks'.split(' '),
  ];
  for (const url of good) {
    it(`accepts ${url}`, () => {
      expect(keyUrlProblem(url)).to.equal(undefined);
    });
  }

  const bad: Readonly<Record<string, readonly string[]>> = {
    'must be an absolute https:// URL of visible ASCII characters': [
      ...'auth.example.com/jwks //auth.example.com/jwks ftp://auth.example.com/jwks file:///etc/passwd'.split(' '),
      ...'data:application/json,{} HTTPS://auth.example.com/jwks https:auth.example.com/jwks'.split(' '),
      ...'https:/auth.example.com/jwks https:///auth.example.com/jwks https://äuth.example.com/jwks'.split(' '),
      'https://',
      '',
      'https:\\\\auth.example.com\\jwks',
      'https://auth.example.com\\@evil.test/jwks',
      ' https://auth.example.com/jwks',
      'https://auth.example.com/jwks\n',
      'https://auth.exa\tmple.com/jwks',
    ],
    'must not be longer than 2048 characters': [`https://auth.example.com/${'a'.repeat(2024)}`],
    'must not contain a user name or a password': [
      'https://user:secret@auth.example.com/jwks',
      'https://user@auth.example.com/jwks',
      'https://@auth.example.com/jwks',
      'http://localhost@evil.test/jwks',
    ],
    'must not contain a fragment: remove "#" and what follows it': [
      'https://auth.example.com/jwks#keys',
      'https://auth.example.com/jwks#',
    ],
    'must be a valid URL such as https://auth.example.com/.well-known/jwks.json': [
      'https://auth.example.com:99999/jwks',
      'https://[::1/jwks',
      'https://a^b.test/',
      'https://1.2.3.256/',
    ],
    'must not have a link-local address: cloud metadata services use them': [
      ...'https://169.254.169.254/latest/meta-data http://169.254.169.254/latest/meta-data'.split(' '),
      ...'https://169.254.0.0/ https://169.254.255.255/ https://2852039166/ https://0xa9fea9fe/'.split(' '),
      ...'https://0251.0376.0251.0376/ https://169.254.43518/ https://169.254.169.254./'.split(' '),
      ...'https://%31%36%39.254.169.254/ https://[fe80::1]/ https://[febf::1]/'.split(' '),
      ...'https://[::ffff:169.254.169.254]/ https://[::ffff:a9fe:a9fe]/ https://[::169.254.169.254]/'.split(' '),
      ...'https://[64:ff9b::169.254.169.254]/ https://[2002:a9fe:a9fe::1]/'.split(' '),
    ],
    'must be https (http is allowed only for loopback addresses, or to any host with allowHttp: true)': [
      ...'http://auth.example.com/jwks http://10.0.0.1/jwks http://128.0.0.1/jwks http://0.0.0.0/jwks'.split(' '),
      ...'http://[::]/jwks http://[::2]/jwks http://[::ffff:127.0.0.1]/jwks'.split(' '),
      ...'http://localhost.example.com/jwks http://127.0.0.1.example.com/jwks http://notlocalhost/jwks'.split(' '),
    ],
  };
  const caseIds: Readonly<Record<string, string>> = {
    'must not have a link-local address: cloud metadata services use them': 'K-041 ',
    'must be https (http is allowed only for loopback addresses, or to any host with allowHttp: true)': 'K-039 K-042 ',
  };
  for (const [problem, urls] of Object.entries(bad)) {
    for (const url of urls) {
      it(`${caseIds[problem] ?? ''}reports that ${JSON.stringify(url).slice(0, 80)} ${problem}`, () => {
        expect(keyUrlProblem(url)).to.equal(problem);
      });
    }
  }
});
