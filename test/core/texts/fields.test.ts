/** The tables of fields in the documentation. The kernel's are generated. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import * as fields from '../../../src/engines/messages/mask/text-fields.ts'

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

it('the documentation lists every field that guards do not read', () => {
  const docs = read('docs/ai.md')
  const unread = [
    fields.settings,
    fields.labels,
    fields.reasoningFields,
    fields.argumentFields,
    fields.responseDetails,
    fields.clientCall,
  ].flatMap((names) => [...names])
  expect(unread.filter((name) => !docs.includes(`\`${name}\``))).toEqual([])
})
