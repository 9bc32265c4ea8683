// What `helm test` runs: sends one request through a Gateway of this release until it is answered
// as its route says, or the time is up. TARGET is the URL, EXPECTED the body, SECONDS the time.
const { TARGET: target, EXPECTED: expected, SECONDS: seconds = '120' } = process.env
const deadline = Date.now() + Number(seconds) * 1000
let last = 'nothing was tried'
while (Date.now() < deadline) {
  try {
    const answer = await fetch(target, { signal: AbortSignal.timeout(5000) })
    const body = await answer.text()
    if (answer.status === 200 && body === expected) {
      console.log(`${target} answered ${answer.status}: ${body}`)
      process.exit(0)
    }
    last = `status ${answer.status}: ${body.slice(0, 200)}`
  } catch (error) {
    last = error?.cause?.message ?? String(error)
  }
  await new Promise((resolve) => setTimeout(resolve, 500))
}
console.error(`${target} did not answer as its route says: ${last}`)
process.exit(1)
