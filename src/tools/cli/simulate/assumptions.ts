import { policyRegistry } from '../../../gateway/policies/registry.ts'
import type { SimulatorOptions } from '../../../past/simulate/index.ts'
import { UsageError } from '../shared/output.ts'

const names = new Set(policyRegistry.map(({ section, field }) => `${section}.${field}`))

/** Reads `STEP=pass`, `STEP=STATUS` and `backend=NAME`. @throws UsageError */
export function readAssumptions(
  texts: readonly string[],
): Pick<SimulatorOptions, 'assumed' | 'assumedBackend'> {
  const assumed = new Map<string, 'pass' | number>()
  let assumedBackend: string | undefined
  for (const text of texts) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(text) ?? []
    if (name === 'backend' && value !== '') assumedBackend = value
    else if (!names.has(name)) {
      throw new UsageError(`--assume ${text}: expected a step such as traffic.extAuth, or backend`)
    } else if (value === 'pass') assumed.set(name, value)
    else if (/^[2-5]\d\d$/.test(value)) assumed.set(name, Number(value))
    else throw new UsageError(`--assume ${text}: expected pass or a status such as 403`)
  }
  return { assumed, ...(assumedBackend !== undefined && { assumedBackend }) }
}
