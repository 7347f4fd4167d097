//go:build race

package main

// raced: the race detector keeps several bytes beside each that is used.
const raced = true
