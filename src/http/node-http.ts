// The values of `node:http`. An ES import reads every export of the module, and to read WebSocket makes Node load its copy of undici: 7 MB of
// memory in each instance (docs/dev/performance.md).
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
