import type { ProviderError } from '../chat.ts'
import { LlmError } from '../llm-error.ts'

/** An error of the provider that came in place of an answer. */
export class ProviderFailure extends LlmError {
  readonly error: ProviderError

  constructor(error: ProviderError) {
    super(error.status, error.message)
    this.name = 'ProviderFailure'
    this.error = error
  }
}
