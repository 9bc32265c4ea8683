/**
 * What policies have learned about one request, for the expressions of later policies, the access log and
 * spans. A field has the name of its variable in expressions, and reads as null there if it is not set.
 *
 * Values are plain data, as from JSON.parse: objects, arrays, strings, booleans, null, numbers (doubles in
 * expressions) and bigints (ints in expressions). They are shared, not copied, so they must not be changed.
 */
export type LearnedValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly LearnedValue[]
  | LearnedRecord

export interface LearnedRecord {
  readonly [name: string]: LearnedValue | undefined
}

/** The caller of a request that an external authorization service allowed. */
export interface AuthorizedCaller {
  /** Header fields by which the service names the user. */
  readonly identity: readonly (readonly [name: string, value: string])[]
  /** Header fields of the client that may have decided the response; `:query` is the query. */
  readonly credentials: readonly (readonly [name: string, value: string])[]
}

export interface RecordSource {
  readonly record: LearnedRecord
}

export class Learned {
  /** Claims of the verified token. */
  jwt: LearnedRecord | undefined
  /** Metadata of the API key that was found, but never the key itself. */
  apiKey: LearnedRecord | undefined
  basicAuth: { readonly username: string } | undefined
  /** Metadata from the external authorization service. */
  extauthz: LearnedRecord | undefined
  /** Metadata from the external processor. */
  extproc: LearnedRecord | undefined
  /** Metadata from the services that check MCP messages. */
  mcpGuardrails: LearnedRecord | undefined
  /** Who the request belongs to by a policy `identity`; undefined without one. */
  ownIdentity: Readonly<Record<string, string>> | undefined
  #llm: LearnedRecord | (() => LearnedRecord | undefined) | undefined
  #llmRequest: LearnedRecord | undefined
  #llmRequestSource: RecordSource | undefined
  #mcp: (() => LearnedRecord) | undefined
  /** Details of a request of an A2A client. */
  a2a: LearnedRecord | undefined
  /**
   * The verified JWT without its scheme, which was removed from the request, for backends that receive it.
   * Expressions and logs cannot see it.
   */
  jwtToken: string | undefined
  /** The verified API key; treated like `jwtToken`. */
  apiKeyToken: string | undefined
  /** The object that has the API key, such as `Secret default/keys`. Expressions and logs cannot see it. */
  apiKeySource: string | undefined
  /** Set if an external authorization service allowed the request. Expressions and logs cannot see it. */
  authorizedCaller: AuthorizedCaller | undefined

  /** Details of a request to a language model. */
  get llm(): LearnedRecord | undefined {
    return typeof this.#llm === 'function' ? this.#llm() : this.#llm
  }

  set llm(value: LearnedRecord | undefined) {
    this.#llm = value
  }

  /** Sets a function that creates `llm` on each read, because for most requests nothing reads it. */
  describeLlm(make: () => LearnedRecord | undefined): void {
    this.#llm = make
  }

  /** The JSON request to a model, parsed, as the client sent it. */
  get llmRequest(): LearnedRecord | undefined {
    return this.#llmRequest ?? this.#llmRequestSource?.record
  }

  set llmRequest(value: LearnedRecord | undefined) {
    this.#llmRequest = value
    this.#llmRequestSource = undefined
  }

  /** Sets a source of `llmRequest` that parses it when it is read, because for most requests nothing reads it. */
  describeLlmRequest(source: RecordSource): void {
    this.#llmRequest = undefined
    this.#llmRequestSource = source
  }

  /** Details of a message of an MCP client. */
  get mcp(): LearnedRecord | undefined {
    return this.#mcp?.()
  }

  /** Sets a function that creates `mcp` on each read; undefined removes it. */
  describeMcp(make: (() => LearnedRecord) | undefined): void {
    this.#mcp = make
  }

  clear(): void {
    this.jwt = undefined
    this.apiKey = undefined
    this.basicAuth = undefined
    this.extauthz = undefined
    this.extproc = undefined
    this.mcpGuardrails = undefined
    this.ownIdentity = undefined
    this.#llm = undefined
    this.llmRequest = undefined
    this.#mcp = undefined
    this.a2a = undefined
    this.jwtToken = undefined
    this.apiKeyToken = undefined
    this.apiKeySource = undefined
    this.authorizedCaller = undefined
  }
}
