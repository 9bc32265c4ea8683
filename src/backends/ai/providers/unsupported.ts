import { UnsupportedByProviderError } from '../llm-error.ts'
import type { RouteType } from '../policy/schema.ts'

export function unsupported(route: RouteType, provider: string): UnsupportedByProviderError {
  return new UnsupportedByProviderError(
    `unsupported conversion: from ${route} to provider ${provider}`,
  )
}
