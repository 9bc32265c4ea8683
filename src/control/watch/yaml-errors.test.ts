import { describe, expect, it } from 'vitest'
import { parseManifest } from './manifest.ts'

function problemIn(text: string) {
  const parsed = parseManifest(text, 'a.yaml')
  if (parsed.ok) throw new Error('it is valid')
  const [{ line, column, message } = { message: '' }] = parsed.problems
  return { place: `${line}:${column}`, message }
}

describe('a text that is not YAML', () => {
  it.each([
    ['a colon in a value', 'a: b: c\n', '1:4', 'put the whole value in quotes'],
    ['a field that is too deep', 'a:\n  b: x\n    c: y\n', '2:6', 'the next line is deeper'],
    [
      'a field that is not deep enough',
      'a:\n    b: x\n  c: y\n',
      '3:1',
      'begin in the same column',
    ],
    ['a tab', 'a:\n\tb: x\n', '2:1', 'a tab is used as indentation: write spaces'],
    ['a missing colon', 'a:\n  b x\n  c: y\n', '2:3', 'write NAME: VALUE'],
    ['no space after a colon', 'a:\n  b:x\n  c: y\n', '2:3', 'a space after the colon'],
    ['a missing colon at the end', 'a:\n  c: y\n  b x\n', '3:3', 'write NAME: VALUE'],
    ['an open text', 'a: "b\nc: d\n', '3:1', 'is not closed by "'],
    ["an open text in '", "a: 'b\nc: d\n", '3:1', "is not closed by '"],
    ['an open list', 'a: [b, c\nd: e\n', '2:1', 'a [ is not closed by ]'],
    ['an open map', 'a: {b: c\nd: e\n', '2:1', 'a { is not closed by }'],
    ['a bracket without partner', 'a: b\nc: ]\n', '2:4', 'has no partner'],
    ['text after quotes', 'a: "b" c\n', '1:8', 'put the whole value in quotes'],
    ['an asterisk', 'a:\n  - *\n', '2:5', 'put the whole value in quotes'],
    ['a character that begins no value', 'a: @x\n', '1:4', 'put the whole value in quotes'],
    ['an item that is not deep enough', 'a:\n  - b\n - c\n', '3:1', 'of a list item'],
    ['an item among fields', 'a:\n  c: d\n  - b\n', '3:1', 'of a list item'],
    ['a field among items', 'a:\n  - b\n  c: d\n', '3:1', 'wrong indentation'],
    ['an escape', 'a: "\\d+"\n', '1:5', 'unknown escape'],
    ['a comment without space', 'a: "x"#c\n', '1:7', 'write a space before #'],
    ['a text that begins on the line of its |', 'a: | x\n  y\n', '1:6', 'begins on the next line'],
    ['a list that begins on the line of its field', 'a: - b\n', '1:4', 'on lines of their own'],
    ['a missing comma', 'a: ["b" "c"]\n', '1:9', 'a comma is missing'],
    ['a missing comma of a map', 'a: {b: c d: e}\n', '1:8', 'a comma is missing'],
    ['a field that is there twice', 'a: 1\nb: 2\na: 3\n', '3:1', 'remove one of the two'],
    ['a template', '{{- if .Values.x }}\na: b\n{{- end }}\n', '1:3', 'render it first'],
    ['a merge conflict', '<<<<<<< HEAD\na: b\n=======\n', '1:1', 'a merge conflict'],
    ['a web page', '<html>\n<body>x: y</body>\n', '1:1', 'looks like HTML'],
  ])('with %s is refused at its place with what to write', (_, text, place, message) => {
    const found = problemIn(text)
    expect(found).toEqual({ place, message: expect.stringContaining(message) })
    expect(found.message).toMatch(/^not YAML: /)
  })

  it.each([
    'a: | Tr0ub4dor\n  x\n',
    'a: > Tr0ub4dor\n',
    'a: "x" Tr0ub4dor\n',
    'a: "\\Tr0ub4dor"\n',
    'Tr0ub4dor\nb: c\n',
    'a: b: Tr0ub4dor\n',
    '%Tr0ub4dor\na: b\n',
    '&Tr0ub4dor &x a: b\n',
  ])('is not repeated in the message: %j', (text) => {
    expect(problemIn(text).message).not.toContain('Tr0ub4dor')
  })
})
