/** Names of patterns that both products have. */
export const builtins: Readonly<Record<string, string>> = {
  caSin: 'CaSin',
  creditCard: 'CreditCard',
  email: 'Email',
  phoneNumber: 'PhoneNumber',
  ssn: 'Ssn',
}
