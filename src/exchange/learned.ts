/**
 * What policies have learned of one request, for the expressions of later policies, for the access
 * log and for spans. One field each, called what expressions call it; undefined until somebody has
 * learned it, which expressions see as null.
 *
 * Values are plain data, as JSON.parse gives it: objects without prototypes of their own, arrays,
 * text, booleans, null, numbers (doubles to expressions) and bigints (ints to expressions). They are
 * shared, not copied: nobody changes one after it was set.
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

/** Whom an external authorization service has let pass. */
export interface AuthorizedCaller {
  /** Fields in which the service has named the user. */
  readonly identity: readonly (readonly [name: string, value: string])[]
  /** Fields of the client that the service may have judged by; `:query` is the query. */
  readonly credentials: readonly (readonly [name: string, value: string])[]
}

export class Learned {
  /** Claims of the token that was verified. */
  jwt: LearnedRecord | undefined
  /** Metadata of the key that was found; never the key. */
  apiKey: LearnedRecord | undefined
  basicAuth: { readonly username: string } | undefined
  /** What the external authorization service said of the request. */
  extauthz: LearnedRecord | undefined
  /** What the external processor said of the request. */
  extproc: LearnedRecord | undefined
  #llm: LearnedRecord | (() => LearnedRecord | undefined) | undefined
  /** The request as the client of a model sent it, read from JSON. */
  llmRequest: LearnedRecord | undefined
  mcp: LearnedRecord | undefined
  /**
   * Credentials that were verified and taken off the request, without their scheme, for a backend
   * to which they are to be passed on. No expression and no log can see them.
   */
  jwtToken: string | undefined
  apiKeyToken: string | undefined
  /** Set once an external authorization service has let the request pass; hidden as tokens are. */
  authorizedCaller: AuthorizedCaller | undefined

  /** Of a request to a language model. */
  get llm(): LearnedRecord | undefined {
    return typeof this.#llm === 'function' ? this.#llm() : this.#llm
  }

  set llm(value: LearnedRecord | undefined) {
    this.#llm = value
  }

  /** `llm` is made when somebody asks for it, each time anew: most requests are never asked about. */
  describeLlm(make: () => LearnedRecord | undefined): void {
    this.#llm = make
  }

  /** Back to knowing nothing. */
  clear(): void {
    this.jwt = undefined
    this.apiKey = undefined
    this.basicAuth = undefined
    this.extauthz = undefined
    this.extproc = undefined
    this.#llm = undefined
    this.llmRequest = undefined
    this.mcp = undefined
    this.jwtToken = undefined
    this.apiKeyToken = undefined
    this.authorizedCaller = undefined
  }
}
