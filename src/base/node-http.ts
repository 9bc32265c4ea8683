import type { Agent as HttpAgent } from 'node:http'

/**
 * Node's HTTP client and server. An `import` from `node:http` would look at every name that the module
 * has, one of which loads Node's own fetch client: 14 MB of memory for each process, and a thread of
 * its own pays again.
 */
export const { createServer, request, Agent } = process.getBuiltinModule('node:http')
export type Agent = HttpAgent
