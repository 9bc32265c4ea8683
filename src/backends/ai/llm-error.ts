/** A request or an answer that cannot be processed; told to the client in its own format. */
export class LlmError extends Error {
  /** HTTP status: 400 for what the client wrote, 502 for what the provider answered. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'LlmError'
    this.status = status
  }
}

/** The chosen provider cannot carry the request; another provider of the backend may. */
export class UnsupportedByProviderError extends LlmError {
  constructor(message: string) {
    super(400, message)
    this.name = 'UnsupportedByProviderError'
  }
}

export const eventTooLarge = () => new LlmError(502, 'an event of the answer is too large')
