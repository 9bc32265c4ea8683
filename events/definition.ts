import { defineEvent, type EventOf } from './envelope.ts'

export interface DefinitionsObservedData {
  readonly versions: readonly string[]
}

export const definitionsObserved = defineEvent<DefinitionsObservedData>()({
  name: 'DefinitionsObserved',
  type: 'dev.sluice.definitions.observed.v1',
  version: 1,
  about: 'The cluster has definitions of the Gateway API in other versions than before.',
  fields: {
    versions:
      'What the definitions of gateway.networking.k8s.io say of their version (annotation gateway.networking.k8s.io/bundle-version), each once, sorted; empty text for one that says nothing.',
  },
})
export type DefinitionsObserved = EventOf<typeof definitionsObserved>
