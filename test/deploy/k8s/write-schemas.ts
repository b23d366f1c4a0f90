// Run by hand when the kinds in k8s/ have changed: see test/fixtures/k8s-schemas/README.md.
import { writeSchemas } from './schemas.ts';

const [apiServer = 'http://127.0.0.1:8001'] = process.argv.slice(2);
await writeSchemas(apiServer);
