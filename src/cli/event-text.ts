/** Events in a few words, for people. */
import type { SluiceEvent } from '../../events/index.ts'

export function eventDetail(event: SluiceEvent): string {
  const { type, data } = event
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
    case 'dev.sluice.deployment.applied.v1':
      return data.changes.map(({ kind, name, change }) => `${kind} ${name} ${change}`).join(', ')
    case 'dev.sluice.deployment.failed.v1':
      return data.message
    case 'dev.sluice.definitions.observed.v1':
      return data.versions.join(', ')
    case 'dev.sluice.jwks.fetched.v1':
      return data.uri
    default:
      return deliveryDetail(event) || replicaDetail(event)
  }
}

/** What is said of proxies: which one, and what. */
function deliveryDetail({ type, data }: SluiceEvent): string {
  switch (type) {
    case 'dev.sluice.proxy.connected.v1': {
      const gateway = data.gateway === undefined ? '' : ` of Gateway ${data.gateway}`
      const replica = data.replica === undefined ? '' : `, at replica ${data.replica}`
      return `proxy ${data.proxy}${gateway}${replica}`
    }
    case 'dev.sluice.proxy.disconnected.v1':
      return `proxy ${data.proxy}: ${data.reason}`
    case 'dev.sluice.config.acked.v1': {
      const count = data.refused?.length ?? 0
      const refused = count === 0 ? '' : `, but for ${count} that it refuses`
      return `proxy ${data.proxy}, in force up to ${data.sequence}${refused}`
    }
    case 'dev.sluice.config.rejected.v1':
      return `proxy ${data.proxy}, ${data.key}: ${data.message}`
    case 'dev.sluice.timer.fired.v1':
      return timerText(data.timer)
    default:
      return ''
  }
}

/** Timers are named by what the fold waits for, and for whom. */
function timerText(timer: string): string {
  const place = timer.indexOf(':')
  const [what, whom] = [timer.slice(0, place), timer.slice(place + 1)]
  if (what === 'silent') return `proxy ${whom} has owed an answer for too long`
  if (what === 'absent') return `Gateway ${whom} has had no proxy for too long`
  return timer
}

function replicaDetail({ type, data }: SluiceEvent): string {
  switch (type) {
    case 'dev.sluice.lease.acquired.v1':
    case 'dev.sluice.lease.lost.v1':
      return `${data.holder}, epoch ${data.epoch}`
    case 'dev.sluice.digest.taken.v1':
      return `replica ${data.replica} at position ${data.position}`
    case 'dev.sluice.digest.differed.v1':
      return `replicas ${data.replica} and ${data.other} at position ${data.position}`
    default:
      return ''
  }
}

/** `dev.sluice.resource.applied.v1` -> `resource.applied`. */
export function shortType(type: string): string {
  return type.replace(/^dev\.sluice\./, '').replace(/\.v[0-9]+$/, '')
}
