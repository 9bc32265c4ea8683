/** Parts of requests that would be lost on their way to a provider: the client is told which. */
import { UnsupportedByProviderError } from '../llm-error.ts'

/** `path`: as the client writes it. `what`: a plural, such as "files by id". */
export function unsupportedPart(path: string, what: string): UnsupportedByProviderError {
  return new UnsupportedByProviderError(`${path}: ${what} are not supported by this provider`)
}
