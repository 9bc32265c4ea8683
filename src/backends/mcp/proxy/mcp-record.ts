import type { BackendRecord } from '../../../proxy/telemetry/types.ts'

/** One message of a client of MCP servers. */
export interface McpFacts {
  readonly method: string
  /** Of these only what the request was about. */
  readonly target?: string
  readonly type?: 'tool' | 'prompt' | 'resource'
  /** Name or URI, as the server knows it. */
  readonly item?: string
  readonly session?: string
  /** Of the error that the client got, whoever made it. */
  readonly errorCode?: number
}

/** What telemetry is told of a request of an MCP client; at least one message. */
export class McpRecord implements BackendRecord {
  readonly protocol = 'mcp'
  readonly messages: readonly McpFacts[]

  constructor(messages: readonly McpFacts[]) {
    this.messages = messages
  }

  /** For a batch a field lists every value once. */
  eachField(visit: Parameters<BackendRecord['eachField']>[0]): void {
    const [first, ...more] = this.messages
    if (first === undefined) return
    for (const [name, read] of fields) {
      if (more.length === 0) visit(name, read(first), false)
      else {
        const values = new Set(this.messages.map(read).filter((value) => value !== undefined))
        visit(name, [...values].join(','), false)
      }
    }
  }
}

type Read = (facts: McpFacts) => string | number | undefined

const itemOf =
  (type: McpFacts['type']): Read =>
  (facts) =>
    facts.type === type ? facts.item : undefined

const fields: readonly (readonly [name: string, read: Read])[] = [
  ['mcp.method.name', ({ method }) => method],
  ['mcp.session.id', ({ session }) => session],
  ['mcp.target', ({ target }) => target],
  ['mcp.resource.type', ({ type }) => type],
  ['mcp.resource.uri', itemOf('resource')],
  ['gen_ai.tool.name', itemOf('tool')],
  ['gen_ai.prompt.name', itemOf('prompt')],
  ['mcp.error.code', ({ errorCode }) => errorCode],
]
