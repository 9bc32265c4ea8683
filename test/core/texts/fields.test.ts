/** The tables of fields in the gateway, in the kernel and in the documentation. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { decidedFields } from '../../../src/engines/messages/decided-fields.ts'
import { guardedFields } from '../../../src/engines/messages/mask/plain-keys.ts'
import { otherFields } from '../../../src/engines/messages/mask/repeated-texts.ts'
import * as fields from '../../../src/engines/messages/mask/text-fields.ts'

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const kernel = read('assembly/texts/fields.ts')

/** The names that the kernel has in the constants NAME_1, NAME_2 and so on. */
const inKernel = (name: string): string[] =>
  [...kernel.matchAll(new RegExp(`const ${name}_\\d+: string = '([^']*)'`, 'g'))]
    .flatMap(([, names = '']) => names.trim().split(' '))
    .sort()

const tables: readonly (readonly [string, Iterable<string>])[] = [
  ['CONTENT', fields.contentFields],
  ['SETTING', fields.settings],
  ['LABEL', fields.labels],
  ['REASONING', fields.reasoningFields],
  ['ARGUMENT', fields.argumentFields],
  ['DETAIL', fields.answerDetails],
  ['CITATION', fields.citationFields],
  ['CLIENT_CALL', fields.clientCall],
  ['IMAGE_CALL', fields.imageCall],
  ['GUARDED', guardedFields],
  ['DECIDED', decidedFields],
  ['UNREPEATED', otherFields],
]

it.each(tables)('the kernel has the same fields in the table %s as the gateway', (name, names) => {
  expect(inKernel(name)).toEqual([...names].sort())
  expect(kernel).toContain(`FIELD_${name}: u32`)
})

it('the documentation lists every field that guards do not read', () => {
  const docs = read('docs/ai.md')
  const unread = [
    fields.settings,
    fields.labels,
    fields.reasoningFields,
    fields.argumentFields,
    fields.answerDetails,
    fields.clientCall,
  ].flatMap((names) => [...names])
  expect(unread.filter((name) => !docs.includes(`\`${name}\``))).toEqual([])
})
