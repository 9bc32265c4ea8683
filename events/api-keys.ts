import { defineEvent } from './envelope.ts'

export interface ApiKeysChangedData {
  readonly namespace: string
  readonly entries: Readonly<Record<string, string | null>>
  readonly reason: string
  readonly author: string
}

export const apiKeysChanged = defineEvent<ApiKeysChangedData>()({
  name: 'ApiKeysChanged',
  type: 'dev.sluice.apikeys.changed.v1',
  version: 1,
  about:
    'An operator has created, changed or deleted API keys that are in no manifest (`sluice keys … --dynamic`).',
  fields: {
    namespace: 'Namespace whose policies accept the keys.',
    entries:
      'Entries by their names, each as the JSON text that a ConfigMap would have, with hashes only; null if the key is deleted.',
    reason: 'Why, in the words of the operator.',
    author: 'Who has changed them.',
  },
})
