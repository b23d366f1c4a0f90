// `npm run demo:mcp`: an MCP client of the TypeScript SDK finds the authorization server through account-authz and Envoy, gets a token and
// calls a tool. Exits with 0 only if every step is as expected.
import { constants } from 'node:os';
import { startMcpDemo } from './mcp-parts.ts';
import { mcpStory } from './mcp-story.ts';
import { messageOf, runStory } from './run-story.ts';
import { createTerminal } from './terminal.ts';

const interrupted = new Promise<number>(resolve => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => resolve(128 + constants.signals[signal]));
  }
});
const terminal = createTerminal();

process.exitCode = await run();
// The child processes end with this one. A step that a signal interrupted may keep it alive for longer.
setTimeout(() => process.exit(), 1000).unref();

async function run(): Promise<number> {
  terminal.title('An MCP server behind account-authz and a real Envoy');
  terminal.text('Everything runs on this machine, on 127.0.0.1, and ends with this command.');
  terminal.text('');
  const starting = startMcpDemo(terminal);
  try {
    const demo = await Promise.race([starting, interrupted]);
    if (typeof demo === 'number') return demo;
    const exitCode = await runStory(mcpStory(demo), interrupted);
    await Promise.race([demo.stop(), interrupted]);
    return exitCode;
  } catch (error) {
    terminal.verdict(`The demo could not start: ${messageOf(error)}`, false);
    return 1;
  }
}
