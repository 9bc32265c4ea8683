/** `backend.mcp.authorization`: whether a caller may use one tool, prompt or resource. */
import type { Exchange } from '../../exchange/exchange.ts'
import type { AuthorizationConfig } from '../../policies/authorization/config.ts'
import { AuthorizationRules } from '../../policies/authorization/rules.ts'

/** What an MCP server offers, as the server itself calls it. */
export interface McpItem {
  readonly kind: 'tool' | 'prompt' | 'resource'
  /** Without the prefix of a target; the URI of a resource, the URI template of a template. */
  readonly name: string
  readonly target: string
}

export class McpAuthorizer {
  readonly #rules: AuthorizationRules
  /** Do the rules read the body of the request? Then it must be in memory. */
  readonly readsBody: boolean

  constructor(config: AuthorizationConfig) {
    this.#rules = new AuthorizationRules([config])
    this.readsBody = this.#rules.request
  }

  /**
   * Judged as HTTP requests are by `traffic.authorization`. Only the variable of the item's own kind
   * is there: a rule about `mcp.tool` is no match for a prompt.
   */
  allows(exchange: Exchange, { kind, name, target }: McpItem): boolean {
    const { learned } = exchange
    const before = learned.mcp
    learned.mcp = { ...before, ...noItem, [kind]: { name, target } }
    try {
      return this.#rules.allows(exchange)
    } finally {
      learned.mcp = before
    }
  }
}

const noItem = { tool: undefined, prompt: undefined, resource: undefined }
