import type { References } from '../../model/references.ts'
import type { Compiled } from '../define.ts'
import type { ExtProcConfig } from './config.ts'
import type { ExtProcSpec } from './schema.ts'

/** A processor that cannot be reached closes what the policy covers. */
export function compile(
  { backendRef }: ExtProcSpec,
  references: References,
): Compiled<ExtProcConfig> {
  const target = references.backend(backendRef)
  if (typeof target === 'string' || target.type === 'invalid') {
    const message = typeof target === 'string' ? target : target.message
    return { problems: [{ path: 'backendRef', message }] }
  }
  return { config: { target }, problems: [] }
}
