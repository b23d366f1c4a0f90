// Draws docs/admin-page.png. Run it after a change of the admin page: npx tsx test/service/draw-admin-page.ts.
import { writeFile } from 'node:fs/promises';
import { renderAdminPage } from '../../src/service/admin-page.ts';
import { picture, startBrowser } from '../support/browser.ts';
import { healthy } from './admin-page-facts.ts';

const browser = await startBrowser();
const page = await browser.newPage({ viewport: { width: 980, height: 1480 }, colorScheme: 'light' });
await page.setContent(renderAdminPage(healthy, ''));
await writeFile(new URL('../../docs/admin-page.png', import.meta.url), await picture(page));
await browser.close();
