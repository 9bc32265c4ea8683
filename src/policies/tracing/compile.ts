import type { References } from '../../model/references.ts'
import type { Compiled } from '../define.ts'
import type { TracingConfig } from './config.ts'
import type { TracingSpec } from './schema.ts'

/** Without a collector there is nowhere to send spans to, and the policy has no effect. */
export function compile(spec: TracingSpec, references: References): Compiled<TracingConfig> {
  const { backendRef, protocol = 'HTTP', attributes, resources = [] } = spec
  const { randomSampling, clientSampling } = spec
  const target = references.backend(backendRef)
  if (typeof target === 'string') return { problems: [{ path: 'backendRef', message: target }] }
  const config = {
    target,
    protocol,
    resources,
    ...(attributes !== undefined && { attributes }),
    ...(randomSampling !== undefined && { randomSampling }),
    ...(clientSampling !== undefined && { clientSampling }),
  }
  return { config, problems: [] }
}
