/** Events in a few words, for people. */
import type { SluiceEvent } from '../../events/index.ts'

export function eventDetail({ type, data }: SluiceEvent): string {
  switch (type) {
    case 'dev.sluice.resource.applied.v1':
      return `generation ${data.generation}`
    case 'dev.sluice.resource.deleted.v1':
      return data.cause
    case 'dev.sluice.resource.refused.v1':
      return data.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
    case 'dev.sluice.relist.finished.v1':
      return `${data.count} objects`
    case 'dev.sluice.desired.published.v1':
      return `digest ${data.digest}, +${data.upserted} -${data.removed}`
    case 'dev.sluice.config.acked.v1':
      return `in force up to ${data.sequence}`
    case 'dev.sluice.config.rejected.v1':
      return `${data.key}: ${data.message}`
    case 'dev.sluice.deployment.applied.v1':
      return data.changes.map(({ kind, name, change }) => `${kind} ${name} ${change}`).join(', ')
    case 'dev.sluice.deployment.failed.v1':
      return data.message
    case 'dev.sluice.definitions.observed.v1':
      return data.versions.join(', ')
    default:
      return ''
  }
}

/** `dev.sluice.resource.applied.v1` -> `resource.applied`. */
export function shortType(type: string): string {
  return type.replace(/^dev\.sluice\./, '').replace(/\.v[0-9]+$/, '')
}
