import { describe, expect, it } from 'vitest'
import { textFeatures } from './text-features.ts'

describe('textFeatures', () => {
  it('returns figures, negations and digests of the words', () => {
    expect(textFeatures("Don't pay 3 + 4 €")?.figures).toEqual(['3', '+', '4', '€'])
    expect(textFeatures("Don't pay, never")?.negations).toBe(2)
    const [one, other] = [textFeatures('A to B'), textFeatures('b to a!')]
    expect(one?.words).toBe(other?.words)
    expect(one?.sequence).not.toBe(other?.sequence)
    expect(textFeatures('A, to B?')).toEqual(one)
  })

  it.each([
    ['Cook three eggs', 'Cook four eggs'],
    ['Wir sind zwanzig', 'Wir sind dreißig'],
    ['Part II of the plan', 'Part III of the plan'],
    ['Pay 1,000 now', 'Pay 1.000 now'],
    ['Add \u20135 to it', 'Add 5 to it'],
    ['It isnt open', 'It is open'],
    ['Send 5 dollars', 'Send 5 euros'],
    ['A bag of 10kg', 'A bag of 10lb'],
    ['Het is niet open', 'Het is open'],
    ['Ele na\u0303o vem', 'Ele ja vem'],
    ['I don\u02bct know', 'I do know'],
  ])('returns different features for %s / %s', (text, other) => {
    const [one, two] = [textFeatures(text), textFeatures(other)]
    expect([one?.figures, one?.negations]).not.toEqual([two?.figures, two?.negations])
  })

  it.each(['Это не так', '从北京到上海', 'それはない', 'Ηταν εδώ', 'Where is 东京?'])(
    'returns undefined for texts of other scripts: %s',
    (text) => {
      expect(textFeatures(text)).toBeUndefined()
    },
  )

  it('returns the same figures and negations for texts that differ in another word', () => {
    const [one, two] = [textFeatures('Où est le café? 🙂'), textFeatures('Où est le bar? 🙂')]
    expect([one?.figures, one?.negations]).toEqual([two?.figures, two?.negations])
  })
})
