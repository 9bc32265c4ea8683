/** Errors in the format that the client of a route type understands. */
import type { ProviderError } from '../chat.ts'
import { clientFormats } from '../client-formats.ts'
import type { JsonObject } from '../json.ts'
import type { RouteType } from '../policy/schema.ts'

export function writeErrorFor(route: RouteType, error: ProviderError): JsonObject {
  switch (route) {
    case 'Messages':
    case 'VendorCTokenCount':
      return clientFormats.Messages.writeError(error)
    case 'Responses':
      return clientFormats.Responses.writeError(error)
    default:
      return clientFormats.Completions.writeError(error)
  }
}
