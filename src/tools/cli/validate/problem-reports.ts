/** Problems of manifests in the formats of other tools: SARIF, annotations of GitHub Actions, and JUnit. */
import { relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { formatProblem, type SourceProblem } from '../../../control/watch/source-problem.ts'

export type ReportFormat = 'sarif' | 'github' | 'junit'

/** An object that was checked. */
interface CheckedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly file: string
}

interface ProblemReport {
  readonly version: string
  readonly problems: readonly SourceProblem[]
  /** All objects that were checked; the ones without a problem are test cases of JUnit as well. */
  readonly objects: readonly CheckedObject[]
}

/** Writes a report as text without a final newline. */
export function formatReport(report: ProblemReport, format: ReportFormat): string {
  return { sarif, github, junit }[format](report)
}

/** What each rule of a report finds, by the reason of the problem. */
const rules: Readonly<Partial<Record<SourceProblem['reason'], string>>> = {
  unreadable: 'A file or folder that cannot be read.',
  syntax: 'A file that is neither YAML nor JSON.',
  invalid: 'An object that is refused.',
  faulty: 'A part of an object that has no effect.',
  unresolved: 'A reference to an object that the files do not define.',
  replaced: 'A setting that replaces guards of a less specific one.',
  duplicate: 'An object that another file defines.',
  ignored: 'An object of a kind or version that Sluice does not read.',
}

const objectName = ({ kind, namespace, name }: Partial<CheckedObject>): string =>
  [kind, [namespace, name].filter(Boolean).join('/')].filter(Boolean).join(' ')

/** The message with object and field, but without the place. */
function messageOf({ kind, namespace, name, path, message }: SourceProblem): string {
  return [objectName({ kind, namespace, name }), path, message].filter(Boolean).join(': ')
}

/** SARIF 2.1.0, as code scanning of GitHub and GitLab read it. */
function sarif({ version, problems }: ProblemReport): string {
  const used = [...new Set(problems.map(({ reason }) => reason))]
  const driver = {
    name: 'sluice',
    version,
    informationUri: 'https://github.com/sluice-dev/sluice',
    rules: used.map((id) => ({ id, shortDescription: { text: rules[id] ?? id } })),
  }
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results: problems.map(sarifResult) }],
  }
  return JSON.stringify(log, undefined, 2)
}

function sarifResult(problem: SourceProblem) {
  const { reason, severity, file, line, column, kind } = problem
  const region = line === undefined ? undefined : { startLine: line, startColumn: column ?? 1 }
  return {
    ruleId: reason,
    level: severity,
    message: { text: messageOf(problem) },
    locations: [
      {
        physicalLocation: { artifactLocation: { uri: uriOf(file) }, ...(region && { region }) },
        ...(kind !== undefined && {
          logicalLocations: [{ fullyQualifiedName: objectName(problem), kind: 'resource' }],
        }),
      },
    ],
  }
}

/** Relative to the current folder if the file is below it, because then it is part of the repository. */
function uriOf(file: string): string {
  const path = relative(process.cwd(), file)
  const isOutside = path === '' || path === '..' || path.startsWith(`..${sep}`)
  if (isOutside) return pathToFileURL(file).href
  return path.split(sep).map(encodeURIComponent).join('/')
}

/** Workflow commands of GitHub Actions, one for each problem. */
function github({ problems }: ProblemReport): string {
  return problems.map(annotation).join('\n')
}

function annotation(problem: SourceProblem): string {
  const { severity, file, line, column } = problem
  const properties = { file, line, col: column, title: objectName(problem) || undefined }
  const written = Object.entries(properties).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${escapeProperty(`${value}`)}`],
  )
  return `::${severity} ${written.join(',')}::${escapeData(messageOf(problem))}`
}

const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

const escapeProperty = (text: string): string =>
  escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

interface TestCase {
  readonly name: string
  readonly file: string
  readonly problems: SourceProblem[]
}

/** JUnit XML: a suite for each file, and a test case for each object. Warnings are output of their case. */
function junit({ problems, objects }: ProblemReport): string {
  const cases = new Map<string, TestCase>()
  const caseOf = (file: string, name: string): TestCase => {
    const key = `${file}\0${name}`
    const found = cases.get(key) ?? { name: name || file, file, problems: [] }
    cases.set(key, found)
    return found
  }
  for (const object of objects) caseOf(object.file, objectName(object))
  for (const problem of problems) caseOf(problem.file, objectName(problem)).problems.push(problem)
  const suites = Map.groupBy(cases.values(), ({ file }) => file)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="sluice validate" ${countsOf([...cases.values()])}>`,
    ...[...suites].flatMap(([file, list]) => [
      `  <testsuite name="${escapeXml(file)}" ${countsOf(list)}>`,
      ...list.flatMap(testCase),
      '  </testsuite>',
    ]),
    '</testsuites>',
  ].join('\n')
}

const errorsOf = ({ problems }: TestCase) => problems.filter(({ severity }) => severity === 'error')

const countsOf = (list: readonly TestCase[]): string =>
  `tests="${list.length}" failures="${list.filter((one) => errorsOf(one).length > 0).length}"`

function testCase(one: TestCase): string[] {
  const errors = errorsOf(one)
  const warnings = one.problems.filter(({ severity }) => severity === 'warning')
  const lines = (list: readonly SourceProblem[]) => escapeXml(list.map(formatProblem).join('\n'))
  return [
    `    <testcase classname="${escapeXml(one.file)}" name="${escapeXml(one.name)}">`,
    ...(errors[0] === undefined
      ? []
      : [`      <failure message="${escapeXml(errors[0].message)}">${lines(errors)}</failure>`]),
    ...(warnings.length === 0 ? [] : [`      <system-out>${lines(warnings)}</system-out>`]),
    '    </testcase>',
  ]
}

/** Characters that XML 1.0 does not permit are replaced, so that any file name and message can be written. */
const escapeXml = (text: string): string =>
  text
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
