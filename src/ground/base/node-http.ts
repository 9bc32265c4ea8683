import type { Agent as HttpAgent } from 'node:http'

/**
 * Node's HTTP client and server. An `import` from `node:http` would evaluate every export of the module, one
 * of which loads Node's fetch client: 14 MB of memory for the process and for each thread.
 */
export const { createServer, request, Agent, STATUS_CODES } = process.getBuiltinModule('node:http')
export type Agent = HttpAgent
