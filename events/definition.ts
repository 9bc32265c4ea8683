import { defineEvent, type EventOf } from './envelope.ts'

export interface DefinitionsObservedData {
  readonly versions: readonly string[]
}

export const definitionsObserved = defineEvent<DefinitionsObservedData>()({
  name: 'DefinitionsObserved',
  type: 'dev.sluice.definitions.observed.v1',
  version: 1,
  about: 'The versions of the Gateway API definitions in the cluster have changed.',
  fields: {
    versions:
      'Distinct values of the annotation gateway.networking.k8s.io/bundle-version on the definitions of gateway.networking.k8s.io, sorted; an empty string for a definition without it.',
  },
})
export type DefinitionsObserved = EventOf<typeof definitionsObserved>
