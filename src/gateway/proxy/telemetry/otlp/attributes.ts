/** The fields of the access log as attributes for collectors. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import type { Attribute, AttributeChanges } from '../../../../ground/exchange/observe.ts'
import { eachField } from '../access-fields.ts'
import type { AccessRecord } from '../types.ts'

/**
 * Returns the fields of an exchange, except `without`, followed by `more`, with the changes of the policy. The result
 * may be kept after the exchange is over.
 */
export function requestAttributes(
  access: AccessRecord,
  exchange: ServerExchange,
  changes: AttributeChanges | undefined,
  without: ReadonlySet<string>,
  more: readonly Attribute[] = [],
): readonly Attribute[] {
  const attributes: Attribute[] = []
  eachField(access, exchange, (name, value) => {
    if (value === undefined || value === '' || without.has(name)) return
    attributes.push([name, Number.isInteger(value) ? BigInt(value) : value])
  })
  attributes.push(...more)
  if (changes === undefined) return attributes
  const added = changes.added(exchange)
  const kept = attributes.filter(
    ([name]) => !changes.removed.has(name) && !added.some(([replaced]) => replaced === name),
  )
  return [...kept, ...added]
}
