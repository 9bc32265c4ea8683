/** `sluice crds`: the custom resource definitions of our kinds. */
import { stringify } from 'yaml'
import { crds } from '../api/crds.ts'
import { exitCode, type Output } from './output.ts'

export async function printCrds(format: 'yaml' | 'json', output: Output): Promise<number> {
  const definitions = crds()
  if (format === 'json') {
    const list = { apiVersion: 'v1', kind: 'List', items: definitions }
    output.print(JSON.stringify(list, undefined, 2))
  } else {
    output.print(
      definitions
        .map((definition) => stringify(definition))
        .join('---\n')
        .trimEnd(),
    )
  }
  return exitCode.fine
}
