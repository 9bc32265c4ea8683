/** Errors for parts of a request that the format of the provider cannot carry. */
import { UnsupportedByProviderError } from '../llm-error.ts'

/** `path`: as the client writes it. `what`: a plural, such as "files by id". */
export function unsupportedPart(path: string, what: string): UnsupportedByProviderError {
  return new UnsupportedByProviderError(`${path}: ${what} are not supported by this provider`)
}
