# A dex with one user, whose groups name account and role, and a client that may ask for tokens of the API.
cat > "$DATA/dex.yaml" << END
issuer: $URL
storage: { type: memory }
web: { http: '127.0.0.1:$PORT' }
enablePasswordDB: true
oauth2: { passwordConnector: local }
staticClients:
  - { id: billing, name: Billing, secret: secret, redirectURIs: ['https://app.example.com/callback'] }
  - { id: api, name: API, secret: unused, trustedPeers: [billing] }
staticPasswords: # of "secret"
  - email: alice@example.com
    userID: alice
    groups: [acme, owner]
    hash: \$2b\$10\$rfvFN3e63RrVcgvDyJDhju/BTO1Q.quBoRoxnNwR/nBUn/Lgi1kje
END
exec ./dex serve "$DATA/dex.yaml"
