// Run by hand after a change of tests that carry ids of security cases: npm run derive
import { writeCasesPage } from './cases-page.ts';

await writeCasesPage();
