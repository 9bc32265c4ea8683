/** A request or a response that cannot be processed; the client gets the error in its own format. */
export class LlmError extends Error {
  /** HTTP status: 400 for errors of the client, 502 for errors of the provider. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'LlmError'
    this.status = status
  }
}

/** The chosen provider does not support the request, but another provider of the backend may. */
export class UnsupportedByProviderError extends LlmError {
  constructor(message: string) {
    super(400, message)
    this.name = 'UnsupportedByProviderError'
  }
}

/** `path` is the path of the part in the client's request; `what` is a plural, such as "files by id". */
export const unsupportedPart = (path: string, what: string): UnsupportedByProviderError =>
  new UnsupportedByProviderError(`${path}: ${what} are not supported by this provider`)

/** `route` is a route type, such as `Embeddings`. */
export const unsupportedRoute = (route: string, provider: string): UnsupportedByProviderError =>
  new UnsupportedByProviderError(`unsupported conversion: from ${route} to provider ${provider}`)

export const eventTooLarge = () => new LlmError(502, 'an event of the response is too large')
