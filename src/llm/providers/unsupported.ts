import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from './provider.ts'

export function unsupported(route: ReadRouteType, provider: string): LlmError {
  return new LlmError(400, `unsupported conversion: from ${route} to provider ${provider}`)
}
