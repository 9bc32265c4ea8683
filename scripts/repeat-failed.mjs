// Repeats the test files that failed, one by one, if they are few. A test that passes only then met a busy
// machine or has a race: it is printed, so that it is repaired and not forgotten. The report gets the
// results of the second run. Ends with status 0 if nothing fails any more.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const mostFiles = 5
const reportPath = process.argv[2]
const repeatedPath = reportPath.replace(/\.json$/, '-repeated.json')
const read = (path) => JSON.parse(readFileSync(path, 'utf8'))

const report = read(reportPath)
const failed = report.testResults.filter((file) => file.status === 'failed')
if (failed.length === 0 || failed.length > mostFiles) process.exit(1)

const names = failed.map((file) => file.name)
console.log(
  `ci: repeating ${names.length} of ${report.testResults.length} test files, which failed`,
)
const { status } = spawnSync('npm', ['test', '--', '--maxWorkers=1', ...names], {
  stdio: 'inherit',
  env: { ...process.env, SLUICE_TEST_REPORT: repeatedPath },
})

const repeated = new Map(read(repeatedPath).testResults.map((file) => [file.name, file]))
const isFailed = (test) => test.status === 'failed'
for (const file of failed) {
  const again = repeated.get(file.name)
  if (again?.status !== 'passed') continue
  const titles = file.assertionResults.filter(isFailed).map((test) => test.fullName)
  for (const title of titles.length > 0 ? titles : ['(the file)']) {
    console.log(`ci: passed only when repeated: ${file.name} > ${title}`)
  }
}
report.testResults = report.testResults.map((file) => repeated.get(file.name) ?? file)
const tests = report.testResults.flatMap((file) => file.assertionResults)
report.numPassedTests = tests.filter((test) => test.status === 'passed').length
report.numFailedTests = tests.filter(isFailed).length
report.success = status === 0
writeFileSync(reportPath, JSON.stringify(report))
process.exit(status ?? 1)
