import type { DesiredDelta } from '../model/resources.ts'
import type { BackendKinds } from './request/backend-kind.ts'

/** What a new backend needs is looked for when it comes, not when it is first called. */
export function warmUp({ upserted }: DesiredDelta, kinds: BackendKinds): void {
  for (const { resource } of upserted) {
    if (resource.type === 'backend') kinds.get(resource.destination.type)?.warmUp?.(resource)
  }
}
