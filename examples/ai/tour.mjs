// Sends the requests of the example, and prints each of them with its response.

const chat = (content, more = {}) => ({
  model: 'fast',
  messages: [{ role: 'user', content }],
  ...more,
})

async function post(base, path, body) {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

const contentOf = ({ text }) => JSON.parse(text).choices[0].message.content

/** The text of a streamed answer. */
const streamed = ({ text }) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '')
    .join('')

/** Sends every request to `base`; `print` gets a line about each. Resolves with what came back. */
export async function tour(base, print) {
  const completions = '/v1/chat/completions'
  const secret = 'I am ann@example.com, key-0123abcd'

  const masked = contentOf(await post(base, `/assistant${completions}`, chat(secret)))
  print(`asked: ${secret}\n  the vendor got this, and repeats it: ${masked}`)

  const inStream = streamed(
    await post(base, `/assistant${completions}`, chat('Hello', { stream: true })),
  )
  print(`the same in a stream, which the vendor cuts in the middle of an address:\n  ${inStream}`)

  const messages = { ...chat('Hello'), max_tokens: 100 }
  const other = JSON.parse((await post(base, '/assistant/v1/messages', messages)).text)
  print(
    `asked in the format of another vendor, answered in it:\n  ${JSON.stringify(other.content)}`,
  )

  const statuses = []
  for (let n = 0; n < 4; n++) {
    statuses.push((await post(base, `/limited${completions}`, chat('How are you?'))).status)
  }
  print(`four requests on a budget of 60 tokens a minute: ${statuses.join(', ')}`)

  // Without a model in the request, the answer names the one that the provider has.
  const unnamed = { ...chat('Still there?'), model: undefined }
  const failover = await post(base, `/steady${completions}`, unnamed)
  const { model } = JSON.parse(failover.text)
  print(`the first vendor is out of capacity; the answer (${failover.status}) is that of ${model}`)

  return { masked, inStream, other, statuses, failover: { status: failover.status, model } }
}
