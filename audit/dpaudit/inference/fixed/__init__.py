"""Tests of counts whose number was fixed beforehand: exact binomial theory."""
