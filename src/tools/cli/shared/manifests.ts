import { stringify } from 'yaml'
import type { CommandResult } from './output.ts'

/** Formats Kubernetes objects: in YAML as one document each, in JSON as one List. */
export function manifestsResult(
  objects: readonly object[],
  toYaml: (object: object) => string = stringify,
): CommandResult {
  const documents = () => objects.map((object) => toYaml(object)).join('---\n')
  return {
    text: () => (objects.length === 0 ? [] : [documents().trimEnd()]),
    json: { apiVersion: 'v1', kind: 'List', items: objects },
  }
}
